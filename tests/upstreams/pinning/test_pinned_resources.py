"""Real upstreams that change their prompts and templates: held against pins as tools are (PIN-1, R-UP-6, D12)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.pinning.pin_lock import PinLock
from goat_mcp.upstreams.pinning.pin_review import approve, meant_by, waiting_in
from tests.cli.test_call import run
from tests.upstreams.changing import Changing
from tests.upstreams.fleet import Fleet, fleet

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

TEMPLATE = "y://{id}"
Ask = Callable[[Fleet], Awaitable[Any]]


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


def offer(changing: Changing, description: str, **prompt: Any) -> None:
    changing.offer(
        prompts=[{"name": "p", "description": description, **prompt}],
        templates=[{"name": "t", "uriTemplate": TEMPLATE, "description": description}],
    )


def shown(running: Fleet) -> dict[str, str]:
    """What clients see: descriptions by name or template."""
    items = running.upstreams.upstream("upstream:x").offerings.items
    return {
        **{str(one["name"]): one["description"] for one in items.prompts},
        **{str(one["uriTemplate"]): one["description"] for one in items.templates},
    }


async def get(running: Fleet) -> Any:
    return await running.upstreams.upstream("upstream:x").requests.get_prompt("p", None, ToolContext(call_id="t"))


async def read(running: Fleet) -> Any:
    return await running.upstreams.upstream("upstream:x").requests.read("y://1", ToolContext(call_id="t"))


async def complete(running: Fleet) -> Any:
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    return await running.upstreams.upstream("upstream:x").requests.complete(params, ToolContext(call_id="t"))


async def complete_template(running: Fleet) -> Any:
    params = {"ref": {"type": "ref/resource", "uri": TEMPLATE}, "argument": {"name": "id", "value": ""}}
    return await running.upstreams.upstream("upstream:x").requests.complete(params, ToolContext(call_id="t"))


ASKING = {"prompt": get, "template": read, "completion": complete, "completion of a template": complete_template}


async def refused(running: Fleet, ask: Ask) -> ToolError:
    with pytest.raises(ToolError) as failure:
        await ask(running)
    assert failure.value.code is ErrorCode.QUARANTINED
    return failure.value


def lock(folder: Path) -> PinLock:
    return PinLock(StateDirectory(folder / "state"))


def approved(folder: Path, *targets: str) -> None:
    """As `goat-mcp lock approve` in another process does."""
    pins = lock(folder)
    waiting = waiting_in(pins.content())
    approve(pins, [one for target in targets for one in meant_by(target, waiting)])


@pytest.mark.parametrize("kind", ASKING)
async def test_a_changed_one_stays_listed_as_pinned_and_is_refused_before_it_is_listed_again(
    changing: Changing, kind: str
) -> None:
    # R-UP-6: the change is announced, and the next request comes before anybody has listed again.
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        await ASKING[kind](running)
        asked = list(changing.calls())
        offer(changing, "EVIL")
        await running.call("mcp__x__announce")

        failure = await refused(running, ASKING[kind])

        await running.until(lambda: len(running.status("x").waiting_pins) == 2)
        assert shown(running) == {"p": "as it was", TEMPLATE: "as it was"}
        assert set(running.status("x").quarantined) == {"prompt p", f"template {TEMPLATE}"}
        assert set(running.status("x").waiting_pins) == {"prompt p", f"template {TEMPLATE}"}
    target = f"template:x:{TEMPLATE}" if "template" in kind else "prompt:x:p"
    assert failure.message == f"{target} is quarantined: its upstream has changed its definition since it was pinned"
    assert f"goat-mcp lock approve {target}" in failure.suggestion
    assert list(changing.calls()) == [*asked, "announce"]


async def test_what_a_new_process_offers_is_held_against_the_pins_before_the_first_prompt(changing: Changing) -> None:
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        await get(running)
    offer(changing, "EVIL")

    # The catalog of the last run is all that is known here when the request comes.
    async with fleet(changing.folder, {"x": changing.entry()}, first_list=False) as running:
        await refused(running, get)
        await refused(running, read)

        assert shown(running) == {"p": "as it was", TEMPLATE: "as it was"}
    assert changing.calls() == ["prompt p"]


async def test_an_approved_change_is_shown_and_sent_without_a_restart(changing: Changing) -> None:
    # D15
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        offer(changing, "as it is")
        await running.call("mcp__x__announce")
        await refused(running, get)
        await refused(running, read)

        approved(changing.folder, "prompt:x:p", f"template:x:{TEMPLATE}")

        await running.until(lambda: shown(running) == {"p": "as it is", TEMPLATE: "as it is"})
        await get(running)
        await read(running)
        assert running.status("x").quarantined == running.status("x").waiting_pins == ()
    async with fleet(changing.folder, {"x": changing.entry()}, first_list=False) as running:
        running.upstreams.upstream("upstream:x").offerings.want()
        assert shown(running) == {"p": "as it is", TEMPLATE: "as it is"}


async def test_a_change_stays_quarantined_over_restarts_and_without_the_stored_catalog(changing: Changing) -> None:
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        offer(changing, "EVIL")
        await running.call("mcp__x__announce")
        await refused(running, get)

    for damage in (False, True):
        for stored in (changing.folder / "state" / "catalog").glob("*.json"):
            stored.write_bytes(b"damaged" if damage else stored.read_bytes())
        async with fleet(changing.folder, {"x": changing.entry()}) as running:
            await running.upstreams.all_offers(20)
            assert shown(running) == {"p": "as it was", TEMPLATE: "as it was"}
            await refused(running, get)


async def test_strict_rejects_what_is_seen_for_the_first_time_until_it_is_approved(changing: Changing) -> None:
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry(pin="strict")}) as running:
        await running.upstreams.all_offers(20)

        assert shown(running) == {}
        rejected = running.upstreams.upstream("upstream:x").offerings.rejected
        assert {(one.kind, one.name) for one in rejected} == {("prompt", "p"), ("template", TEMPLATE)}
        failure = await refused(running, get)
        assert failure.message == "prompt:x:p is quarantined: it waits for approval, as pin: strict wants"
        await refused(running, read)

        approved(changing.folder, "x")
        await running.until(lambda: shown(running) == {"p": "as it was", TEMPLATE: "as it was"})
        await get(running)
        await read(running)
    assert changing.calls() == ["prompt p", "read y://1"]


async def test_strict_lists_before_a_read_of_what_nobody_has_listed_yet(changing: Changing) -> None:
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry(pin="strict")}) as running:
        await refused(running, read)
    assert changing.calls() == []


async def test_one_character_in_an_argument_of_a_prompt_is_a_change(changing: Changing) -> None:
    offer(changing, "as it was", arguments=[{"name": "a", "description": "x"}])
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        offer(changing, "as it was", arguments=[{"name": "a", "description": "y"}])
        await running.call("mcp__x__announce")

        await refused(running, get)
        await read(running)


async def test_a_list_of_resources_for_a_model_shows_templates_as_pinned(changing: Changing) -> None:
    # It asks the upstream itself: the change is not announced.
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        offer(changing, "EVIL")

        listed = await running.upstreams.resources().list("x", 10)

        assert [one["description"] for one in listed.templates] == ["as it was"]
        await refused(running, read)


async def test_without_pinning_a_changed_prompt_is_shown_and_sent(changing: Changing) -> None:
    offer(changing, "as it was")
    async with fleet(changing.folder, {"x": changing.entry(pin="off")}) as running:
        await running.upstreams.all_offers(20)
        offer(changing, "as it is")
        await running.call("mcp__x__announce")
        await running.until(lambda: shown(running) == {"p": "as it is", TEMPLATE: "as it is"})

        await get(running)
        await read(running)
    assert not lock(changing.folder).path.exists()


async def test_the_lock_command_checks_shows_and_approves_prompts_and_templates(changing: Changing) -> None:
    # PIN-2
    folder = changing.folder
    offer(changing, "as it was")

    async def goat(*words: str) -> CompletedProcess[str]:
        return await anyio.to_thread.run_sync(lambda: run("lock", *words, cwd=folder))

    async with fleet(folder, {"x": changing.entry()}) as running:
        unlisted = await goat("--check", "--upstreams", "upstreams.json")
        # A request, unlike a list, is not answered from what the check has stored.
        await get(running)
    same = await goat("--check", "--upstreams", "upstreams.json")
    offer(changing, "EVIL\x1b[8m")
    differs = await goat("--check", "--upstreams", "upstreams.json")
    async with fleet(folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        await refused(running, get)
    listed = await goat("list")
    shown_change = await goat("show", "prompt:x:p")
    agreed = json.loads((await goat("show", "prompt:x:p", "--json")).stdout)["hash"]
    done = await goat("approve", "prompt:x:p", "--yes", agreed)

    assert (unlisted.returncode, unlisted.stdout) == (0, "x\tas pinned\n")
    assert (same.returncode, same.stdout) == (0, "x\tas pinned\n")
    assert differs.returncode == 1
    assert differs.stdout.splitlines()[0] == "x\tdiffers"
    assert set(differs.stdout.splitlines()[1:]) == {"  changed: prompt:x:p", f"  changed: template:x:{TEMPLATE}"}
    waiting = ("prompt:x:p", f"template:x:{TEMPLATE}")
    assert set(listed.stdout.splitlines()[1:]) == {
        *(f"  waits: {one}" for one in waiting),
        *(f"  careful: {one}: its definition hides characters" for one in waiting),
    }
    assert '  +  "description": "EVIL\\u001b[8m",' in shown_change.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "Approved: prompt:x:p"
    async with fleet(folder, {"x": changing.entry()}) as running:
        await running.upstreams.all_offers(20)
        await get(running)
        await refused(running, read)
