"""The libraries that the headers name are those that the loader really loads."""

import glob
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from deno import find_deno_bin

from gloveport.sandbox.jail import elf
from gloveport.sandbox.jail.syscalls import MACHINE


def loaded(pid: int | str) -> set[str]:
    """Return the shared objects in a process's memory."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {path for line in lines if ".so" in (path := line.split(maxsplit=5)[-1]) and path.startswith("/")}


@pytest.mark.integration
def test_what_deno_needs_is_what_a_running_deno_has_loaded() -> None:
    deno = str(find_deno_bin())
    command = [deno, "eval", "--no-lock", "console.log(1); Deno.stdin.readSync(new Uint8Array(1))"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        real = loaded(process.pid)
        process.kill()
    needs = elf.find_dependencies(deno)
    named = {os.path.realpath(host) for _, host in needs.libraries} | {os.path.realpath(str(needs.interpreter))}
    assert named == real


def test_libraries_beside_the_program_are_found_through_its_own_search_path() -> None:
    needs = elf.find_dependencies(os.path.realpath(sys.executable))
    assert {os.path.realpath(host) for _, host in needs.libraries} <= loaded("self")


def test_what_extensions_need_is_found_with_it_and_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    program = os.path.realpath(sys.executable)
    (module,) = glob.glob(f"{sysconfig.get_path('stdlib')}/lib-dynload/_ssl.*.so")
    alone = {os.path.basename(place) for place, _ in elf.find_dependencies(program).libraries}
    together = {os.path.basename(place) for place, _ in elf.find_dependencies(program, [module]).libraries}
    assert any(name.startswith("libssl.") for name in together - alone)
    lost = tmp_path / "lost.so"
    lost.write_bytes(Path(module).read_bytes().replace(b"libssl.so", b"libnil.so"))
    without = {os.path.basename(place) for place, _ in elf.find_dependencies(program, [str(lost)]).libraries}
    assert not any(name.startswith(("libssl.", "libnil.")) for name in without)
    with pytest.raises(elf.ElfError, match=r"libnil\.so"):
        elf.find_dependencies(str(lost))


def test_every_library_is_to_lie_where_a_loader_without_a_cache_looks() -> None:
    needs = elf.find_dependencies(os.path.realpath(sys.executable))
    folders = elf.default_directories(MACHINE)
    assert needs.libraries
    assert {os.path.dirname(place) for place, _ in needs.libraries} <= set(folders)


def test_the_loaders_cache_is_read_and_names_files_that_exist() -> None:
    entries = dict(elf._cache_entries())
    assert any(os.path.exists(place) for place in entries["libc.so.6"])
    assert dict(elf._cache_entries("/no/such/cache")) == {}


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(100), bytes(200)])
def test_what_is_no_program_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd").write_bytes(content)
    with pytest.raises(elf.ElfError, match="odd is not a 64-bit"):
        elf.find_dependencies(str(tmp_path / "odd"))
