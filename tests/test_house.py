"""The house rules that a script can check: small folders, one class per name, constants that say what they bound."""

import ast
import os
import pwd
import re
from collections import defaultdict
from pathlib import Path, PurePosixPath

from gloveport.folders import cache_folder, config_folder, data_folder
from tests.test_api import ROOT, modules

MAX_MODULES_PER_FOLDER = 18
_OLD_NAMES = re.compile(r"_?(MOST_|LONGEST|LARGEST|FEW|DEAR|LARGE$)")


def constants(tree: ast.Module) -> list[str]:
    """Return the names that a module assigns at its top level."""
    targets: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def test_no_folder_lists_more_modules_than_a_reader_can_survey() -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in {".py", ".js"} and path.name != "__init__.py" and "static" not in path.parts:
            folders[path.parent.relative_to(ROOT).as_posix()].append(path.name)
    assert {folder: len(names) for folder, names in folders.items() if len(names) > MAX_MODULES_PER_FOLDER} == {}


def test_no_two_classes_have_the_same_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in modules():
        if PurePosixPath("sandbox/engines/javascript") not in PurePosixPath(name).parents:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_constant_says_what_it_bounds() -> None:
    old = {name: [one for one in constants(tree) if _OLD_NAMES.match(one)] for name, tree in modules()}
    assert {name: found for name, found in old.items() if found} == {}


def test_no_test_writes_into_the_folders_of_whoever_runs_it() -> None:
    theirs = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert [each for each in (config_folder(), data_folder(), cache_folder()) if each.is_relative_to(theirs)] == []
