"""The tape: nothing in ordinary runs, a faithful copy in audits."""

import contextvars
import threading

import numpy as np
import pytest

from tacit._release import Diverged, recording, release, replaying


def noisy(value, output, label="sum"):
    return release(
        label, value=value, sensitivity=1.0, norm="l2", draw=lambda: output.copy()
    )


def test_an_ordinary_run_draws_and_reads_nothing_else():
    def unread(output):
        raise AssertionError("value was read")

    drawn = object()
    out = release("x", value=unread, sensitivity=None, norm=None, draw=lambda: drawn)
    assert out is drawn


def test_recording_keeps_copies():
    value, output = np.zeros(2), np.ones(2)
    with recording() as tape:
        got = noisy(value, output)
    value += 5
    got += 5
    (entry,) = tape.releases
    assert entry.label == "sum"
    assert entry.shape == (2,)
    assert (entry.sensitivity, entry.norm) == (1.0, "l2")
    np.testing.assert_array_equal(entry.value, [0, 0])
    np.testing.assert_array_equal(entry.output, [1, 1])


def test_replaying_returns_the_recorded_output_without_drawing():
    with recording() as tape:
        noisy(np.zeros(2), np.ones(2))
    with replaying(tape) as again:
        got = release(
            "sum",
            value=np.full(2, 3.0),
            sensitivity=1.0,
            norm="l2",
            draw=lambda: pytest.fail("drew"),
        )
    np.testing.assert_array_equal(got, [1, 1])
    np.testing.assert_array_equal(again.releases[0].value, [3, 3])
    got += 1
    np.testing.assert_array_equal(tape.releases[0].output, [1, 1])


def test_redraw_draws_and_throws_the_draw_away():
    drawn = []

    def draw():
        drawn.append(1)
        return float(len(drawn))

    def run():
        return release("x", value=0.0, sensitivity=1.0, norm="l1", draw=draw)

    with recording() as tape:
        run()
    with replaying(tape, redraw=True):
        assert run() == 1.0
    assert len(drawn) == 2


def test_a_callable_value_is_taken_at_the_output():
    def run(data):
        return release(
            "tilt",
            value=lambda w: data * w,
            sensitivity=1.0,
            norm="l2",
            draw=lambda: np.array([2.0]),
        )

    with recording() as tape:
        run(1.0)
    with replaying(tape) as again:
        run(3.0)
    np.testing.assert_array_equal(tape.releases[0].value, [2.0])
    np.testing.assert_array_equal(again.releases[0].value, [6.0])


def test_noise_added_in_place_does_not_reach_the_recorded_value():
    value = np.zeros(2)

    def draw():
        value[:] += 7
        return value

    with recording() as tape:
        release("x", value=value, sensitivity=1.0, norm="l2", draw=draw)
    np.testing.assert_array_equal(tape.releases[0].value, [0, 0])


@pytest.mark.parametrize("redraw", [False, True])
def test_a_release_inside_a_draw_is_part_of_it(redraw):
    def run():
        return release(
            "outer",
            value=0.0,
            sensitivity=1.0,
            norm="l1",
            draw=lambda: noisy(np.zeros(2), np.ones(2), "inner"),
        )

    with recording() as tape:
        run()
    with replaying(tape, redraw=redraw) as again:
        run()
    assert [r.label for r in tape.releases] == ["outer"]
    assert [r.label for r in again.releases] == ["outer"]


@pytest.mark.parametrize(
    "second",
    [
        lambda: [noisy(np.zeros(2), np.ones(2)) for _ in range(2)],
        lambda: noisy(np.zeros(2), np.ones(2), "other"),
        lambda: noisy(np.zeros(3), np.ones(3)),
    ],
    ids=["one more", "another label", "another shape"],
)
def test_another_sequence_of_releases_stops_the_replay(second):
    with recording() as tape:
        noisy(np.zeros(2), np.ones(2))
    with replaying(tape) as again, pytest.raises(Diverged):
        second()
    assert again.diverged


def test_a_replay_that_left_the_recording_does_not_come_back():
    with recording() as tape:
        noisy(np.zeros(2), np.ones(2))
        noisy(np.zeros(2), np.ones(2))
    with replaying(tape):
        with pytest.raises(Diverged):
            noisy(np.zeros(2), np.ones(2), "other")
        with pytest.raises(Diverged):
            noisy(np.zeros(2), np.ones(2))


def test_tapes_cannot_be_nested():
    with recording() as tape:
        with pytest.raises(RuntimeError, match="nested"), recording():
            pass
        with pytest.raises(RuntimeError, match="nested"), replaying(tape):
            pass


def test_the_tape_is_put_away_after_an_error():
    with pytest.raises(ZeroDivisionError), recording() as tape:
        raise ZeroDivisionError
    noisy(np.zeros(1), np.zeros(1))
    assert tape.releases == []


def in_thread(function):
    caught = []

    def body():
        try:
            function()
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return caught


def test_a_tape_carried_into_another_thread_is_refused():
    with recording() as tape:
        context = contextvars.copy_context()
        caught = in_thread(lambda: context.run(noisy, np.zeros(1), np.zeros(1)))
    assert len(caught) == 1
    assert "thread" in str(caught[0])
    assert tape.releases == []


def test_an_unknown_norm_is_refused_while_recording():
    with recording(), pytest.raises(ValueError, match="norm must be one of"):
        release("x", value=0.0, sensitivity=1.0, norm="l3", draw=float)
