"""What people do with runs that were recorded, over /v1 as the pages do: replay, roll back, apply a plan, export."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from gloveport.host.runs.run_file import read_run_file
from tests.web.conftest import WebServed

pytestmark = pytest.mark.integration
BOOK = "[await tools.book({room: 'a'}), await tools.book({room: 'b'})]"


async def _ran(client: httpx2.AsyncClient, code: str, **more: Any) -> dict[str, Any]:
    return (await client.post("/v1/runs", json={"code": code, **more})).json()


async def test_a_run_is_replayed_undone_and_exported(served: WebServed, tmp_path: Any) -> None:
    async with await served.browser() as client:
        run = (await _ran(client, BOOK))["run"]
        replayed = (await client.post(f"/v1/runs/{run}/replay", json={})).json()
        assert replayed == {"ok": True, "run": run, "difference": None}
        undone = (await client.post(f"/v1/runs/{run}/rollback", json={})).json()
        assert undone["ok"]
        assert [(one["undo"], one["undo_args"]) for one in undone["writes"]] == [
            ("local.unbook", {"id": "booking-b"}),
            ("local.unbook", {"id": "booking-a"}),
        ]
        again = (await client.post(f"/v1/runs/{run}/rollback", json={})).json()
        assert [one["status"] for one in again["writes"]] == ["undone-before"] * 2
        exported = await client.get(f"/v1/runs/{run}/export")
        assert exported.headers["content-disposition"] == f'attachment; filename="{run}.json"'
        file = tmp_path / "run.json"
        await asyncio.to_thread(file.write_bytes, exported.content)
        assert (await asyncio.to_thread(read_run_file, file)).code == BOOK
        assert json.loads(exported.content)["run"] == run


@pytest.mark.parametrize("wait", [True, False])
async def test_a_plan_is_applied_once_by_a_person(served: WebServed, wait: bool) -> None:
    async with await served.browser("agent", "default") as agent, await served.browser("approver") as person:
        planned = await _ran(agent, "await tools.refund({order: 'A-1', amount: 5})", mode="plan")
        path = f"/v1/runs/{planned['run']}/apply"
        assert len(planned["plan"]["writes"]) == 1
        assert (await agent.post(path, json={})).status_code == 403
        applied = await person.post(path, json={"wait": wait})
        assert applied.status_code == (200 if wait else 202), applied.text
        run = applied.json()["run"]
        async with asyncio.timeout(60):
            while (found := (await person.get(f"/v1/runs/{run}")).json())["run"]["status"] == "running":  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.02)
        assert found["outcome"]["value"] == "refunded 5.0 of A-1"
        assert found["outcome"]["calls"][0]["approval"]["approver"] == "ada"
        again = await person.post(path, json={})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "approval-refused")
        other = (await _ran(agent, "1"))["run"]
        assert (await person.post(f"/v1/runs/{other}/apply", json={})).status_code == 404


async def test_only_those_who_may_do_these_things(served: WebServed) -> None:
    async with await served.browser() as admin:
        run = (await _ran(admin, "1 + 1"))["run"]
    asked = [("POST", "replay"), ("POST", "rollback"), ("POST", "apply"), ("GET", "export")]
    statuses: dict[str, list[int]] = {}
    for role, name in (("approver", "ada"), ("agent", "default"), ("agent", "reader"), ("monitor", "m")):
        async with await served.browser(role, name) as client:
            replies = [await client.request(method, f"/v1/runs/{run}/{what}", json={}) for method, what in asked]
            statuses[f"{role} {name}"] = [reply.status_code for reply in replies]
    assert statuses == {
        "approver ada": [403, 403, 404, 200],
        "agent default": [200, 403, 403, 200],
        "agent reader": [404, 403, 403, 404],
        "monitor m": [403, 403, 403, 403],
    }
