"""Servers that keep something: files, a graph, a repository. What they say they did is there when others look."""

import subprocess
from pathlib import Path

import pytest

from gloveport.errors import ToolError
from tests.servers.support import npm, pypi
from tests.sources.mcp.support import call, on_stdio, opened

GIT = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]


async def test_files_are_really_written_moved_and_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    async with opened(on_stdio(*npm("mcp-server-filesystem", str(inside)))) as source:
        await call(source, "write_file", path=str(inside / "a.txt"), content="one\ntwo\n")
        assert (inside / "a.txt").read_text() == "one\ntwo\n"
        edits = [{"oldText": "two", "newText": "three"}]
        await call(source, "edit_file", path=str(inside / "a.txt"), edits=edits)
        await call(source, "move_file", source=str(inside / "a.txt"), destination=str(inside / "b.txt"))
        assert (inside / "b.txt").read_text() == "one\nthree\n"
        read = await call(source, "read_text_file", path=str(inside / "b.txt"))
        assert "three" in str(read)
        for wrong in (outside / "secret", inside / "none.txt", inside / ".." / "outside" / "secret"):
            with pytest.raises(ToolError):
                await call(source, "read_text_file", path=str(wrong))


async def test_a_graph_is_kept_from_one_session_to_the_next(tmp_path: Path) -> None:
    config = on_stdio(*npm("mcp-server-memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    async with opened(config) as source:
        await call(source, "create_entities", entities=[ada, engine])
        relation = {"from": "Ada", "to": "Engine", "relationType": "programmed"}
        await call(source, "create_relations", relations=[relation])
        found = await call(source, "search_nodes", query="first program")
        assert [entity["name"] for entity in found["entities"]] == ["Ada"]
    async with opened(config) as source:
        graph = await call(source, "read_graph")
        assert {entity["name"] for entity in graph["entities"]} == {"Ada", "Engine"}
        assert graph["relations"][0]["relationType"] == "programmed"
        await call(source, "delete_entities", entityNames=["Ada"])
        assert len((await call(source, "read_graph"))["entities"]) == 1


async def test_commits_are_really_made(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run([*GIT, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init")
    git("commit", "--allow-empty", "-m", "nothing yet")
    (tmp_path / "program.txt").write_text("begin\n")
    who = {
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    async with opened(on_stdio(*pypi("mcp-server-git"), env=who)) as source:
        assert source._session and source._session.client.protocol_version == "2026-07-28"
        repository = str(tmp_path)
        assert "program.txt" in str(await call(source, "git_status", repo_path=repository))
        await call(source, "git_add", repo_path=repository, files=["program.txt"])
        await call(source, "git_commit", repo_path=repository, message="The program begins")
        assert "The program begins" in git("log", "-1")
        await call(source, "git_create_branch", repo_path=repository, branch_name="later")
        assert "later" in git("branch")
        with pytest.raises(ToolError):
            await call(source, "git_checkout", repo_path=repository, branch_name="nowhere")
        with pytest.raises(ToolError):
            await call(source, "git_status", repo_path=str(tmp_path / "none"))
        assert "main" in git("branch", "--show-current")
