"""Charges that Hypothesis makes up, for ledgers in memory and in databases."""

from hypothesis import strategies as st

from tacit.privacy import ApproxDP, GaussianNoise, LaplaceNoise, PureDP
from tacit.privacy.events import TiltedMinimum

EVENTS = st.one_of(
    st.floats(1.0, 100.0).map(GaussianNoise),
    st.floats(1.0, 100.0).map(LaplaceNoise),
    st.floats(0.01, 1.0).map(PureDP),
    st.builds(ApproxDP, st.floats(0.01, 1.0), st.floats(0, 1e-7)),
    st.builds(TiltedMinimum, st.floats(0.0, 0.1), st.floats(2.0, 50.0)),
)
