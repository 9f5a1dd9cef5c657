"""All that is searched, by package and name; `tests.test_complete` misses nothing."""

from tests.cases import cases

__all__ = ["SUBJECTS", "package_of"]


def package_of(subject):
    """Return the package of the first name that a subject stands for."""
    return subject.covers[0].split(".")[0]


SUBJECTS = {f"{package_of(s)}: {s.name}": s for s in cases("searches")}
