"""How the imports of a TypeScript program are resolved, and what replaces them."""

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import locate, prepare
from gloveport.types import Importable, ModuleImport

SKILL = "/root/skills/docx/helpers/x.mjs"
KNOWN = Importable(frozenset({"path", "fs"}), frozenset({"lodash", "zod", "@a/b", "jszip"}), frozenset({SKILL}))

# the program, the code that its imports become, the modules
FORMS: list[tuple[str, str, tuple[str, ...]]] = [
    ("import _ from 'lodash';\n_", 'const {"default":_}=$$module("lodash","default");', ("lodash",)),
    ("import * as _ from 'lodash'\n_", 'const _=$$module("lodash");', ("lodash",)),
    ("import { get as g, set } from 'lodash/fp'\nset(g)", '{"get":g,"set":set}=$$module("lodash/fp","get","set")', ("lodash/fp",)),
    ("import d, * as n from '@a/b/c'\nn(d)", 'const n=$$module("@a/b/c");', ("@a/b/c",)),
    ("import { 'a-b' as c } from 'zod'\nc", '{"a-b":c}=$$module("zod","a-b")', ("zod",)),
    ("import 'zod'", '$$module("zod");', ("zod",)),
    ("import { type T, z } from 'zod'\nz", '{"z":z}=$$module("zod","z")', ("zod",)),
    ("import { T } from 'zod'\nconst x: T = 1", '$$module("zod");', ("zod",)),
    ("import path from 'node:path'\npath", '=$$module("path","default")', ("path",)),
    ("import fs = require('fs')\nfs", 'const fs=$$require("fs");', ("fs",)),
    ("const z = require('npm:zod@4/v4')\nz", 'const z = $$require("zod/v4")', ("zod/v4",)),
    ("(await import(`jszip`)).default", '(await $$import("jszip")).default', ("jszip",)),
    ("(await import('jszip', {with: {}})).default", '(await $$import("jszip")).default', ("jszip",)),
    (f"import {{ x }} from '{SKILL}'\nx", f'$$module("{SKILL}","x")', (SKILL,)),
    ("import { x } from './docx/helpers/x'\nx", f'$$module("{SKILL}","x")', (SKILL,)),
    ("import { x } from 'docx/helpers/x.mjs'\nx", f'$$module("{SKILL}","x")', (SKILL,)),
    ("import { x } from '../root/skills/docx/helpers/x.mjs'\nx", f'$$module("{SKILL}","x")', (SKILL,)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "modules"), FORMS)
def test_an_import_becomes_a_look_up(text: str, code: str, modules: tuple[str, ...]) -> None:
    program = prepare(text, importable=KNOWN)
    assert code in program.code
    assert tuple(found.name for found in program.imports) == modules
    assert all(KNOWN.has(found) for found in program.imports)


def test_imports_come_before_the_program_and_move_none_of_its_lines() -> None:
    text = "const early = join('a', 'b');\nimport { join } from 'path';\nearly.nope.nope"
    program = prepare(text, importable=KNOWN)
    assert program.code.index("$$module") < program.code.index("early")
    offset = program.code.index("early.nope")
    line = program.code.count("\n", 0, offset) + 1
    column = offset - program.code.rfind("\n", 0, offset)
    assert locate(program, line, column) == (3, 1)


def test_a_program_names_each_module_once() -> None:
    program = prepare("import a from 'zod'; import { z } from 'zod'; [a, z, require('zod')]", importable=KNOWN)
    assert program.imports == (ModuleImport("zod", "package", "import"), ModuleImport("zod", "package", "require"))


@pytest.mark.parametrize(
    "text",
    [
        "import { x } from 'docx/helpers/x.mjs';\nexport default async () => x()",
        "import { x } from 'docx/helpers/x.mjs';\nasync () => x()",
        "import { x } from 'docx/helpers/x.mjs';\nasync function main() { return x() }",
        "import { x } from 'docx/helpers/x.mjs';\nexport const y = 1;\nx(y)",
    ],
)
def test_every_form_of_a_program_may_import(text: str) -> None:
    assert prepare(text, importable=KNOWN).code.startswith('const {"x":x}=$$module(')


# the program, part of the message, part of the hint, the package that a person could approve
REFUSED: list[tuple[str, str, str, str | None]] = [
    ("import x from 'left-pad'", "no package of that name is approved", "ask the user to approve it", "npm:left-pad"),
    ("import x from 'lodahs'", "no package of that name is approved", "did you mean `lodash`", None),
    ("import x from 'papaprse'", "no package of that name is approved", "did you mean `papaparse`?", "npm:papaparse"),
    ("import x from '@a/c'", "no package of that name is approved", "did you mean `@a/b`?", None),
    ("import x from 'axios'", "no package of that name is approved", "use `fetch`", "npm:axios"),
    ("import x from 'node:net'", "no such module of Node", "raw sockets", None),
    ("import x from 'child_process'", "no such module of Node", "processes", None),
    ("import x from './docx/helpers/y.mjs'", "no module of the project", f"did you mean `{SKILL}`?", None),
    ("import x from '../../../etc/passwd'", "no module of the project", "/root/skills/", None),
    ("import x from '/root/skills/../../etc/passwd'", "no module of the project", "/root/skills/", None),
    ("import x from 'lodash@https://evil.example/x'", "no package of npm", "network", None),
    ("import x from 'jsr:@std/path'", "no package of npm", "network", None),
    ("import x from 'data:text/javascript,1'", "no package of npm", "network", None),
    ("import x from 'a b'", "no approved package", "platform", None),
    (f"import x from '{'x' * 400}'", "too long", "name a package", None),
    ("".join(f"import 'zod/{i}';" for i in range(201)), "more than 200 imports", "once", None),
]


@pytest.mark.parametrize(("text", "message", "hint", "package"), REFUSED)
def test_an_import_that_is_not_allowed_says_what_would_be(text: str, message: str, hint: str, package: str | None) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(text, importable=KNOWN)
    error = caught.value
    assert error.code == "import-refused"
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.package == package


def test_a_path_of_a_package_belongs_to_it_and_to_no_other() -> None:
    assert KNOWN.has(ModuleImport("@a/b/c/d", "package", "import"))
    assert not KNOWN.has(ModuleImport("@a", "package", "import"))
    assert not KNOWN.has(ModuleImport("zodiac", "package", "import"))
    assert not KNOWN.has(ModuleImport("net", "builtin", "import"))
    assert not KNOWN.has(ModuleImport("/etc/passwd", "file", "import"))
