"""Reports of released models of streams, of every kind that can be saved."""

import pytest
from tests.persistence.subjects import stream_models
from tests.reports.test_pages import words

from tacit.cli._reporting import write_reports
from tacit.persistence import SavedModel, read, write

STREAMS = stream_models()


@pytest.mark.parametrize("name", STREAMS)
def test_reports_state_what_the_one_charge_covers(name, tmp_path):
    model = STREAMS[name]
    folder = write(tmp_path / "model", SavedModel(model, model.privacy_))
    pages = write_reports(folder, read(folder), None)
    for key in ("report", "card", "card_html"):
        with open(pages[key], encoding="utf-8") as page:
            told = words(page.read())
        assert f"The model after step {model.n_steps_} of a stream" in told
        assert f"covers the models of all {model.horizon} steps together" in told
    rows = model.rows_per_person
    assert ("at most one row in the stream" in told) == (rows == 1)
    assert (f"at most {rows} rows in the stream" in told) == (rows > 1)
