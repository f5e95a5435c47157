"""The link holds the whole set-up; a broken one is refused with its mistake."""

from __future__ import annotations

import json

import pytest

from chromium import Page
from playground_page import TWO_READERS, Playground, open_playground

pytestmark = pytest.mark.browser

_FULL = (
    "#device=nvme-tlc&scheduler=bfq,slice_idle:2,low_latency:0&scheduler=kyber&"
    "task=one,randrw,block:16k,file:64m,processes:2,buffered:1,fsync:8,think:10,begin:5,class:rt,level:2,group:fast&"
    "task=two,write,depth:8,class:idle&group=fast,300&group=slow,30&sharing=iocost&machine=ordinary&"
    "dispatch-wait=3&seed=7"
)


@pytest.mark.parametrize("link", [TWO_READERS, _FULL])
def test_a_link_comes_back_as_it_is(playground: Playground, link: str) -> None:
    playground.open(link)
    assert playground.problem == ""
    assert playground.link == link


def test_a_link_in_the_address_is_opened(page: Page, file: object, playground: Playground) -> None:
    again = open_playground(page, playground.file, _FULL)
    assert again.link == _FULL
    assert again.evaluate("document.getElementById('device').value") == "nvme-tlc"
    page.evaluate(f"location.hash = {json.dumps(TWO_READERS)}")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert again.evaluate("document.getElementById('device').value") == "hdd-7200"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("#device=floppy&scheduler=none&task=a,read", 'no device "floppy"'),
        ("#device=hdd-7200&scheduler=cqf&task=a,read", 'no scheduler "cqf"'),
        ("#device=hdd-7200&scheduler=bfq,slice:1&task=a,read", 'bfq has no tunable "slice"'),
        ("#device=hdd-7200&scheduler=bfq,slice_idle:much&task=a,read", "slice_idle"),
        ("#device=hdd-7200&scheduler=none", "1 to 8 tasks"),
        ("#device=hdd-7200&scheduler=none&task=a,wander", "pattern"),
        ("#device=hdd-7200&scheduler=none&task=A!,read", "small letters"),
        ("#device=hdd-7200&scheduler=none&task=a,read,depth:many", "depth"),
        ("#device=hdd-7200&scheduler=none&task=a,read,block:1000", "block"),
        ("#device=hdd-7200&scheduler=none&task=a,read,speed:9", 'unknown field "speed"'),
        ("#device=hdd-7200&scheduler=none&task=a,read,constructor:9", "unknown field"),
        ("#device=hdd-7200&scheduler=none&task=a,read,group:none", "no such group"),
        ("#device=hdd-7200&scheduler=none&task=a,read&group=g,0", "weight"),
        ("#device=hdd-7200&scheduler=none&task=a,read&task=a,read", "two tasks"),
        ("#device=hdd-7200&scheduler=none&task=a,read&colour=red", 'unknown part "colour=red"'),
        ("#device=hdd-7200&scheduler=none&task=a,read&seed=-1", "seed"),
        ("#device=hdd-7200&scheduler=%E0%A4%A&task=a,read", "cannot be read"),
        ("#device=hdd-7200&scheduler=none&task=<b>,read", "small letters"),
    ],
)
def test_a_broken_link_is_named_and_the_page_continues(playground: Playground, link: str, words: str) -> None:
    playground.open(link)
    assert words in playground.problem
    assert playground.evaluate("playground.player.lanes.length") >= 1
    playground.play_until(1e6)
