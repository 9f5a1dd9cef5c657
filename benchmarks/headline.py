"""All benchmarks: ``--quick`` for the headline figures, everything otherwise."""

import argparse

from benchmarks import accounting, accuracy, noise_speed, speed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    accuracy.main()
    print()
    speed.fits()
    print()
    speed.imports()
    print()
    noise_speed.main()
    if not quick:
        print()
        accounting.main()


if __name__ == "__main__":
    main()
