"""What ``tacit stream`` says: rows that add nothing, runs with nothing to do, fits."""

import pytest
from tests.cli.streaming import HEADER, arguments, place, releases


@pytest.fixture
def ward(tmp_path):
    return place(tmp_path)



