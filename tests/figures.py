"""Results of benchmarks that are made up, for tests of the pages made of them."""

from benchmarks import tables


def saving(report, common, rows, section_of_rows, folder, monkeypatch):
    """Return what saves results to ``folder``, where the page is now too.

    ``rows`` are those of one section, and all others have the same line.
    """
    monkeypatch.setattr(common.RESULTS, "folder", folder)
    monkeypatch.setattr(report, "PAGE", folder / "page.md")
    report.PAGE.write_text(f"Before\n\n{tables.START}\n{tables.END}\n")

    def save(quick):
        for section in report.SECTIONS:
            own = section.name == section_of_rows
            some = rows if own else [{"size": 5, "error": 0.25}]
            common.RESULTS.save(section.name, some, quick=quick)

    return save
