"""Every statement of every lesson holds in the simulator, in the page itself."""

from __future__ import annotations

import pytest

from blklab.labs.playground.lessons import Lesson, load_lessons
from chromium import Page
from playground_page import Playground

LESSONS = load_lessons()


def test_there_are_lessons_about_the_field() -> None:
    assert len(LESSONS) >= 8
    assert len({lesson.id for lesson in LESSONS}) == len(LESSONS)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_each_statement_can_fail(lesson: Lesson) -> None:
    for statement in lesson.statements:
        assert statement.least is not None or statement.most is not None, statement.text
        assert statement.left != statement.right, statement.text


@pytest.mark.browser
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_its_statements_hold(playground: Playground, lesson: Lesson) -> None:
    playground.click(f"lesson-{lesson.id}")
    playground.evaluate("playground.player.play(false)")
    assert playground.problem == ""
    assert playground.text("#lesson-title") == lesson.title
    assert playground.link == lesson.link, "the link is written as the page writes it"
    playground.click("lesson-check")
    kinds = playground.evaluate(
        "[...document.querySelectorAll('#lesson-statements li')].map((one) => one.className)"
    )
    texts = playground.text("#lesson-statements")
    assert kinds == ["holds"] * len(lesson.statements), texts


_PLACES = """
[...document.querySelectorAll('[data-picture]')].filter(
  (one) => one.dataset.picture === document.getElementById('lanes').dataset.watch
).map((one) => {
  const { top, bottom } = one.getBoundingClientRect();
  return { top, bottom, framed: getComputedStyle(one).outlineStyle === 'solid' };
})
"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844), (1920, 1080)])
def test_what_a_lesson_tells_to_watch_is_on_the_screen(
    playground: Playground, width: int, height: int
) -> None:
    assert isinstance(playground.page, Page)
    playground.page.emulate(width=width, height=height)
    for lesson in LESSONS:
        playground.click(f"lesson-{lesson.id}")
        playground.evaluate("playground.player.play(false)")
        places = playground.evaluate(_PLACES)
        assert places, lesson.id
        assert all(one["framed"] for one in places), lesson.id
        # Lanes are above each other on a phone, where a lesson's text takes half of the screen.
        seen = places[:1] if width == 390 else places
        for one in seen:
            assert one["top"] >= 0, lesson.id
            assert (one["top"] + 80 if width == 390 else one["bottom"]) <= height, lesson.id
    playground.click("lesson-close")
    assert playground.evaluate("document.getElementById('lanes').dataset.watch ?? null") is None


@pytest.mark.browser
def test_a_wrong_statement_is_shown_as_wrong(playground: Playground) -> None:
    playground.click("lesson-order")
    playground.evaluate("playground.player.play(false)")
    playground.evaluate("playground.lessons.lessons[0].statements[0].least = 100")
    playground.click("lesson-check")
    assert playground.evaluate("document.querySelector('#lesson-statements li').className") == "fails"


@pytest.mark.browser
def test_lessons_follow_each_other_and_close(playground: Playground) -> None:
    playground.click(f"lesson-{LESSONS[0].id}")
    playground.click("lesson-next")
    assert playground.text("#lesson-title") == LESSONS[1].title
    pressed = "document.querySelectorAll('#lesson-list [aria-pressed=true]').length"
    assert playground.evaluate(pressed) == 1
    playground.click("lesson-close")
    assert playground.evaluate("document.getElementById('lesson').hidden")
    assert playground.evaluate(pressed) == 0
