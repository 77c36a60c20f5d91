"""TypeScript means the same without its types: each erased program gives on `quickjs` what it gives on Deno."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gloveport import Gloveport
from gloveport.errors import ProgramError
from gloveport.prepare import prepare
from gloveport.sandbox.engines.quickjs.subset import QuickJSSubset

QUICKJS = QuickJSSubset()

COMPILED = "enum Compiled { Yes }\n"
"""Put before a program, this makes Deno compile it: an enum is more than a type."""

SNIPPETS = {
    "annotated variables": "const a: number = 1; let b: string | null = 'x'; var c: Array<{ d: number }> = [{ d: 2 }]\nreturn [a, b, c]",
    "a variable without a value": "let a: number\na = 3\nreturn a",
    "definite assignment": "let a!: number\na = 4\nreturn a",
    "parameters": "function f(a: number, b?: string, c: boolean = true, ...d: unknown[]): unknown[] { return [a, b, c, d] }\nreturn f(1, undefined, false, 2, 3)",
    "destructured parameters": "const f = ({ a, b = 2 }: { a: number; b?: number }, [c]: [string]): string => `${a}${b}${c}`\nreturn f({ a: 1 }, ['z'])",
    "a this parameter": "function f(this: { n: number }, a: number): number { return this.n + a }\nreturn f.call({ n: 1 }, 2)",
    "a lone this parameter": "function f(this: { n: number }): number { return this.n }\nreturn f.call({ n: 5 })",
    "a this parameter with a line end": "function f(\n  this: { n: number },\n  a: number,\n): number {\n  return this.n + a\n}\nreturn f.call({ n: 1 }, 2)",
    "interfaces": "interface A { x: number; y?(): void }\ninterface B extends A { z: string }\nconst b: B = { x: 1, z: 'b' }\nreturn b",
    "type aliases": "type A = number | string\ntype B<T> = { [K in keyof T]: T[K] }\ntype C = A extends string ? 1 : 2\nconst a: A = 5\nreturn a",
    "a type alias over lines": "type Shape =\n  | { kind: 'circle'; r: number }\n  | { kind: 'square'; s: number }\nconst s: Shape = { kind: 'square', s: 2 }\nreturn s.kind",
    "a type before a parenthesis": "let n = 0\nconst f = (x: number) => { n += x }\ntype T = number\n(f)(3)\nreturn n",
    "a type before a bracket": "const out: number[] = []\ntype T = { a: 1 }\n;[1, 2].forEach((x) => out.push(x))\nreturn out",
    "an interface before a template": "const a = 1\ninterface I { a: 1 }\n`x`\nreturn a",
    "a cast": "const a: unknown = 5; return (a as number) + 1",
    "a cast at the end of a line": "const a: unknown = 5\nconst b = a as number\nreturn b",
    "a cast before a line with a parenthesis": "let seen = 0\nconst a: any = (x: number) => { seen = x }\nconst b = a as any\n(a)(7)\nreturn [seen, typeof b]",
    "casts of casts": "return ('x' as unknown as any) as string",
    "a const cast": "const a = ['x', 'y'] as const; return a[1]",
    "a cast that is assigned to": "const o: unknown = {}; (o as any).x = 1; (o as { y: number })['y'] = 2; return o",
    "a cast in a condition": "const a: any = 1; return (a as boolean) ? 'yes' : 'no'",
    "a cast in a template": "const a: any = 1; return `${a as string}-${(a as any)!}`",
    "a cast in arguments": "return Math.max(1 as number, 2 as any, ...([3] as number[]))",
    "a cast in a spread": "return { ...({ a: 1 } as object), b: 2 as const }",
    "a cast of an arrow": "const f = ((a: number) => a + 1) as unknown as (a: number) => number; return f(1)",
    "a cast of an awaited value": "const a = (await Promise.resolve(3)) as number; return a",
    "a cast in a loop": "let sum = 0; for (const n of [1, 2] as number[]) sum += n as number; return sum",
    "a cast before instanceof": "return (new Date(0) as any) instanceof Date",
    "a cast before an operator": "const a: any = 4; return a as number * 2",
    "angle brackets": "const a: unknown = 5; const b = <number>a; return <any>b + 1",
    "satisfies": "const a = { x: 1 } satisfies { x: number }; return a satisfies object",
    "non-null": "const a: { b?: { c: number } } = { b: { c: 3 } }; return a.b!.c + a!.b!['c']",
    "non-null after a chain": "const a: any = null; return [a?.b!.c.d, a?.['x']!]",
    "non-null before a call": "const f: (() => number) | undefined = () => 6; return f!()",
    "non-null before an increment": "let a: number | undefined = 1; a!++; return a!",
    "non-null at the end of a line": "const a: number | null = 1\nconst b = a!\nreturn b",
    "non-null and unequal": "const a: any = 1; return a! != 2 && a! !== 3",
    "generic functions": "function first<T, U extends T[] = T[]>(list: U): T | undefined { return list[0] }\nreturn first<number>([1, 2])",
    "generic arrows": "const id = <T,>(x: T): T => x; const two = <A, B extends A>(a: A, b: B): [A, B] => [a, b]; return [id(1), two<any, any>(2, 3)]",
    "generic async arrows": "const id = async <T,>(x: T): Promise<T> => x; return await id<number>(4)",
    "generics over lines": "const id = async <\n  T,\n>(\n  x: T,\n): Promise<T> => x\nreturn await id(4)",
    "generic classes": "class Box<T> { constructor(readonly_: T) { this.value = readonly_ } value: T; map<U>(f: (x: T) => U): Box<U> { return new Box<U>(f(this.value)) } }\nreturn new Box<number>(2).map<string>((x) => `${x}`).value",
    "generic calls": "return [new Map<string, number>([['a', 1]]).get('a'), new Array<number>(2).length, [1].map<string>(String), Promise.resolve<number>(1) instanceof Promise]",
    "generic tags": "function tag<T>(s: TemplateStringsArray, ...v: T[]): string { return s.join('|') + v.join() }\nreturn tag<number>`a${1}b`",
    "instantiations": "const make = Array<number>; return make(3).length",
    "a return type over lines": "const f = (a: number): {\n  a: number;\n} => ({ a })\nreturn f(1)",
    "a return type on a line of its own": "const f = (a: number)\n  : number => a + 1\nreturn f(1)",
    "a return type that is a function": "const f = (a: number): ((b: number) => number) => (b) => a + b; return f(1)(2)",
    "a predicate": "const isText = (x: unknown): x is string => typeof x === 'string'; function check(x: unknown): asserts x is number { if (typeof x !== 'number') throw new Error('no') }\ncheck(1); return isText('a')",
    "a predicate of this": "class A { ok(): this is A { return true } }\nreturn new A().ok()",
    "assertions": "function must(x: unknown): asserts x { if (!x) throw new Error('no') }\nmust(1); return 'fine'",
    "overloads": "function f(a: string): string;\nfunction f(a: number): number;\nfunction f(a: any): any { return a }\nreturn [f('x'), f(1)]",
    "overloads without semicolons": "function f(a: string): string\nfunction f(a: number): number\nfunction f(a: any): any { return a }\nreturn f(2)",
    "overloaded methods": "class A { m(a: string): string; m(a: number): number; m(a: any): any { return a } }\nreturn new A().m(3)",
    "modifiers": "class A { private a = 1; protected readonly b: number = 2; public static c = 3; static readonly d: string = 'd'; private static e?: number; get sum(): number { return this.a + this.b } }\nreturn [new A().sum, A.c, A.d, A.e]",
    "modified methods": "class A { private one(): number { return 1 } protected async two(): Promise<number> { return this.one() + 1 } public static *three(): Generator<number> { yield 3 } public get four(): number { return 4 } }\nconst a: any = new A(); return [await a.two(), [...A.three()], a.four]",
    "overridden methods": "class A { m(): number { return 1 } }\nclass B extends A { override m(): number { return super.m() + 1 } }\nreturn new B().m()",
    "fields": "class A { a: number; b?: string; c!: boolean; d: number = 4; ['e']: number = 5; 'f g': number = 6; 7: string = 'x'; #h: number = 8; get h(): number { return this.#h } }\nconst a = new A(); return [Object.keys(a), a.h]",
    "fields without semicolons": "class A {\n  a: number = 1\n  private b: number = 2\n  public ['c']: number = 3\n  readonly d: number\n  static e: number = 5\n  get: string = 'g'\n  set: number = 1\n  m() { return this.get }\n}\nreturn [Object.keys(new A()), A.e, new A().m()]",
    "a computed member after a modifier": "class A {\n  a = 1\n  private ['b'] = 2\n  public *g(): any { yield 1 }\n}\nreturn [Object.keys(new A()), [...new A().g()]]",
    "declared fields": "class A { a = 1 }\nclass B extends A { declare a: number; b = 2 }\nreturn { ...new B() }",
    "index signatures": "class A { [key: string]: unknown; a = 1; readonly [key: number]: unknown }\nreturn { ...new A() }",
    "abstract classes": "abstract class A { abstract area(): number; abstract name: string; protected abstract get q(): number; twice(): number { return this.area() * 2 } }\nclass B extends A { name = 'b'; get q() { return 1 } area(): number { return 3 } }\nreturn new B().twice()",
    "implements": "interface I { a(): number }\ninterface J {}\nclass A implements I, J { a() { return 1 } }\nclass B extends A implements I { b() { return 2 } }\nreturn new B().a() + new B().b()",
    "a generic base": "class A<T> { constructor(public_: T) { this.v = public_ } v: T }\nclass B<T> extends A<T[]> implements Iterable<T> { [Symbol.iterator](): Iterator<T> { return this.v[Symbol.iterator]() } }\nreturn [...new B<number>([1, 2])]",
    "class expressions": "const A = class<T> { constructor(private_: T) { this.x = private_ } readonly x: T }; return new A<number>(1).x",
    "optional methods": "class A { m?(): number; n() { return this.m?.() ?? 'none' } }\nreturn new A().n()",
    "declarations of others": "declare const outside: number\ndeclare function away(a: number): string\ndeclare let l: any, m: any\nreturn typeof outside",
    "a declared namespace": "declare namespace N { const x: number }\nreturn 1",
    "types in a function": "const f = () => { type A = number; interface B { a: A }\n const b: B = { a: 1 }; return b.a }\nreturn f()",
    "types in blocks": "if (true) { type A = 1\n interface B {}\n var x: A = 1 }\nreturn x",
    "catch": "try { throw new Error('e') } catch (e: any) { return e.message } finally { const z: number = 1; void z }",
    "loops": "const out: string[] = []; for (let i: number = 0, n: number = 2; i < n; i++) out.push(`${i as number}`); for (const [k, v] of Object.entries({ a: 1 }) as [string, number][]) out.push(k + v); return out",
    "loops without braces": "let n: number = 0\nwhile (n < 3) n = (n + 1) as number\ndo n++\nwhile ((n as number) < 6)\nreturn n",
    "if and else": "let a: any = 1\nif (a) a = 2 as number\nelse a = 3 as number\nreturn a",
    "arrows in arguments": "return [3, 1, 2].sort((a: number, b: number): number => a - b).filter((x): x is number => x > 1).reduce<number>((sum, x) => sum + x, 0)",
    "arrows in conditions": "const f = true ? (a: number): number => a : (b: number) => b + 1; return f(1)",
    "conditions with calls": "const a: any = true, b = (x: any) => x; return a ? (b)(1) : b",
    "comparisons that look like generics": "const a = 1, b = 2, c = 3; return [a < b, b > c, (a < b) as any > (c as any), a < b && c > a]",
    "labels": "outer: for (const a of [1, 2] as number[]) { for (const b of [1]) { if (a === 1) continue outer; return a + b } }\nreturn 0",
    "switches": "const k: 'a' | 'b' = 'b' as any; switch (k as string) { case 'a' as string: return 1; case 'b': { const z: number = 2; return z } default: return 3 }",
    "objects with methods": "const o = { a<T>(x: T): T { return x }, async b(x: number): Promise<number> { return x }, get c(): number { return 3 }, set c(v: number) {}, d: (x: number): number => x, ['e']: 5 as number }; return [o.a<number>(1), await o.b(2), o.c, o.d(4), o.e]",
    "key queries": "const o = { a: 1, b: 2 }; const k: keyof typeof o = 'b'; return o[k as keyof typeof o]",
    "tuples and literals": "const t: [a: number, b?: string, ...rest: boolean[]] = [1, 'x', true]; const u: `x-${string}` = 'x-1'; const n: -1 | 1n = -1; return [t, u, n]",
    "function types": "const f: (a: number, ...b: string[]) => void = () => {}; const g: new (a: number) => Date = Date as any; const h: { (a: number): string; x: 1 } = Object.assign((a: number) => `${a}`, { x: 1 as const }); return [typeof f, typeof g, h(1)]",
    "unique and never": "const s: unique symbol = Symbol('s'); function no(): never { throw new Error('never') }\ntry { no() } catch (e) { return [(e as Error).message, typeof s] }",
    "generators": "function* g<T>(a: T): Generator<T, void, unknown> { yield a }\nasync function* h(): AsyncGenerator<number> { yield 2 }\nconst out: number[] = [...g<number>(1)]; for await (const x of h()) out.push(x as number); return out",
    "assignments": "let a: any, b: any; [a, b] = [1, 2] as [number, number]; ({ a, b = 5 as number } = { a: 3 } as any); a ??= 1 as any; b ||= 2 as any; return [a, b]",
    "destructuring with a type": "const { a, ...rest }: { a: number; [k: string]: number } = { a: 1, b: 2 }; const [x, , y = 3]: (number | undefined)[] = [1]; return [a, rest, x, y]",
    "comments among types": "const a /* one */ : /* two */ number /* three */ = /* four */ 1 // five\n/* six */ type /* seven */ T = 1 // eight\nreturn a as /* nine */ number",
    "odd characters among types": "type Größe = { länge: number; '😀': string }\nconst é: Größe = { länge: 1, '😀': '🎉' } as Größe\nreturn é['😀']",
    "accessors of classes": "class A { private _v = 1; get v(): number { return this._v } set v(value: number) { this._v = value } static #n: number = 2; static get n(): number { return A.#n } }\nconst a = new A(); a.v = 5; return [a.v, A.n]",
    "default exports of types": "const a: Parameters<typeof parseInt>[0] = '7'; return parseInt(a as string)",
    "regular expressions": "const r: RegExp = /a<b>(c)/g as RegExp; return ['a<b>c'.replace(r as any, (_: string, c: string): string => c)]",
    "strings that look like types": "const a: string = 'x as any'; const b = `const y: number = ${1 as number}`; return [a, b]",
    "a chain over lines": "const a = ([1, 2, 3] as number[])\n  .map((x: number): number => x * 2)\n  .filter((x) => (x as any) > 2)\nreturn a",
    "optional calls": "const o: { f?: (a: number) => number } = { f: (a) => a + 1 }; return [o.f?.(1 as number), (o as any).g?.(2)!]",
    "a namespace of types": "type A = 1\ninterface N { x: A }\nconst n: N['x'] = 1; return n",
    "new without parentheses": "const d = new Date as Date; return d instanceof Date",
    "using as a name": "const as = 1, type = 2, of = 3, satisfies = 4, declare = 5, abstract = 6; return as + type + of + satisfies + declare + abstract",
    "computed members after others": "const a = 'a', b = 'b'\nclass P { [b]: number = 0 }\nclass A extends P {\n  readonly [a]: string = a\n  override readonly [b] = 1\n  static readonly [a] = 2\n}\nreturn [{ ...new A() }, A.a]",
    "members named like words": "const o = { type: 1, as: 2, is: 3, declare: 4, readonly: 5, abstract: 6 }; class A { type = 1; as = 2; declare = 3; readonly = 4 }\nreturn [o.type + o.as, Object.keys(new A())]",
}  # fmt: skip


@pytest.mark.parametrize("name", SNIPPETS)
async def test_an_erased_program_gives_what_deno_gives(port: Gloveport, name: str) -> None:
    deno = await port.run(COMPILED + SNIPPETS[name])
    assert deno.error is None, deno.error
    for engine in ("quickjs", "deno"):
        erased = await port.run(SNIPPETS[name], engine=engine)
        assert erased.error is None, erased.error
        assert erased.value == deno.value


def test_there_are_enough_snippets() -> None:
    assert len(SNIPPETS) >= 80


@settings(
    max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given(names=st.lists(st.sampled_from(sorted(SNIPPETS)), min_size=2, max_size=6), end=st.sampled_from(["\n", ";\n", " ; "]))
async def test_snippets_one_after_another_give_what_deno_gives(port: Gloveport, names: list[str], end: str) -> None:
    parts = [f"const part{n}: any = async (): Promise<unknown> => {{ {SNIPPETS[name]}\n}}" for n, name in enumerate(names)]
    calls = ", ".join(f"await (part{n} as any)()" for n in range(len(names)))
    code = end.join([*parts, f"return [{calls}] as unknown[]"])
    deno, erased = await port.run(COMPILED + code), await port.run(code, engine="quickjs")
    assert deno.error is None, deno.error
    assert erased.error is None, erased.error
    assert erased.value == deno.value


@pytest.mark.parametrize("name", SNIPPETS)
def test_every_place_stays(name: str) -> None:
    program = prepare(SNIPPETS[name], subset=QUICKJS)
    code, erased = program.code, program.code if program.erased is None else program.erased
    assert len(erased) == len(code)
    assert [found.start() for found in re.finditer("\n", erased)] == [found.start() for found in re.finditer("\n", code)]


UNREAD = {
    "const a: any = 1; return a as x.y.z": "put the cast in parentheses",
    "const a: any = 1; return a satisfies a.b.c<string>[]": "put the cast in parentheses",
    "const sql: any = 1; return sql<A & B>`x`.pipe()": "remove the type",
    "const sql: any = 1; return [sql<Array<A>>`x`]": "remove the type",
}


@pytest.mark.parametrize("code", UNREAD)
async def test_what_the_grammar_misreads_is_not_erased(code: str) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(code, subset=QUICKJS)
    assert (caught.value.code, caught.value.hint) == ("engine-lacks", UNREAD[code])
    assert prepare(code).erased is None  # its own compiler reads it


REFUSED = {
    "enum E { A }\nreturn E.A": ("enums", 1, 1),
    "const x = 1;\nconst enum E { A }\nreturn E.A": ("enums", 2, 1),
    "class A {\n  constructor(private x: number) {}\n}\nreturn new A(1)": ("parameter properties", 2, 15),
    "class A {\n  constructor(readonly x: number) {}\n}": ("parameter properties", 2, 15),
    "class A {\n  constructor(private x?: number) {}\n}": ("parameter properties", 2, 15),
    "class A {\n  constructor(readonly x?: number) {}\n}": ("parameter properties", 2, 15),
    "const d: any = () => {};\n@d class A {}": ("decorators", 2, 1),
    "namespace N {\n  export const x = 1;\n}": ("namespaces", 1, 1),
    "namespace N { export type T = 1 }\nimport T = N.T;": ("`import … =`", 2, 1),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_more_than_a_type_is_refused_with_its_place(code: str) -> None:
    what, line, column = REFUSED[code]
    with pytest.raises(ProgramError) as caught:
        prepare(code, subset=QUICKJS)
    error = caught.value
    assert (error.code, error.message) == ("engine-lacks", f"the engine `quickjs` has no {what}")
    assert (error.line, error.column) == (line, column)
    assert "`deno`" in (error.hint or "")


@pytest.mark.parametrize("code", ["const a: any = 1\nconst b = a as any\n[b]", "type A = B\n[1].map(String)"])
def test_a_line_that_a_type_may_go_on_with_is_never_dropped(code: str) -> None:
    try:
        assert "[" in prepare(code, subset=QUICKJS).code
    except ProgramError as error:
        assert error.line == len(code.splitlines())
        assert ";" in (error.hint or "")


LACKING = {
    "new Intl.NumberFormat('de').format(1)": "Intl",
    "const u = new URL('https://example.com')": "URL",
    "return globalThis.URLSearchParams": "URLSearchParams",
    "await crypto.subtle.digest('SHA-256', new Uint8Array(1))": "crypto.subtle",
    "(1234.5).toLocaleString('en-US')": "toLocaleString",
    "new AbortController()": "AbortController",
    "Buffer.from('ab')": "Buffer",
    "Temporal.Now.instant()": "Temporal",
}


@pytest.mark.parametrize("code", LACKING)
def test_what_the_engine_lacks_is_named_before_the_run(code: str) -> None:
    prepare(code)
    with pytest.raises(ProgramError) as caught:
        prepare(code, subset=QUICKJS)
    assert (caught.value.code, caught.value.message) == ("engine-lacks", f"the engine `quickjs` has no `{LACKING[code]}`")


@pytest.mark.parametrize(
    "code",
    [
        "typeof Intl === 'undefined' ? 'none' : 1",
        "class URL { constructor(x) { this.x = x } }\nreturn new URL(1).x",
        "const f = (Headers) => Headers; f(1)",
        "const { Event } = { Event: 1 }; Event",
        "const o = { URL: 1, Intl: 2 }; o.URL + o.Intl",
        "let x: URL | undefined; x",
        "'Intl' // Intl",
        "function Blob() { return 1 } Blob()",
        "import type { Response } from 'x'; const r: Response = 1; r",
        "try { throw 1 } catch (File) { File }",
    ],
)
async def test_a_name_that_is_the_programs_own_or_only_a_type_is_not_missed(port: Gloveport, code: str) -> None:
    outcome = await port.run(code, engine="quickjs")
    assert outcome.error is None, outcome.error


@pytest.mark.long
@pytest.mark.parametrize(
    "line", ["x as any;\n", "import.meta as any;\n", "f<a>(b);\n", "(a\n):b=>c;\n", "type A = 1\n", "URL as any;\n"]
)
def test_a_large_program_is_erased_in_time_that_grows_with_its_size(line: str) -> None:
    began = time.process_time()
    prepare("const URL = 1;\n" + line * (500_000 // len(line)), subset=QUICKJS)
    assert time.process_time() - began < 30
