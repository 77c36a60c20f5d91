"""One real use of each package of npm that agents like: a program, and the value that it returns."""

COMPILES = frozenset({"ajv", "handlebars"})
"""Packages that compile code: they work where `allow_eval` is on."""

USES: dict[str, tuple[str, object]] = {
    "ajv": ("import Ajv from 'ajv'; new Ajv().compile({type: 'object', required: ['a']})({a: 1})", True),
    "cheerio": ("import * as cheerio from 'cheerio'; cheerio.load('<ul><li>a<li>b</ul>')('li').last().text()", "b"),
    "csv-parse": (
        "import { parse } from 'csv-parse/sync'; parse('a,b\\n1,\"2,3\"', {columns: true})",
        [{"a": "1", "b": "2,3"}],
    ),
    "date-fns": (
        "import { addDays, format } from 'date-fns'; import { de } from 'date-fns/locale';"
        " format(addDays(new Date(2024, 0, 31), 1), 'EEEE d. MMMM', {locale: de})",
        "Donnerstag 1. Februar",
    ),
    "dayjs": (
        "import dayjs from 'dayjs'; import utc from 'dayjs/plugin/utc'; dayjs.extend(utc);"
        " dayjs.utc('2024-02-28').add(2, 'day').format('YYYY-MM-DD')",
        "2024-03-01",
    ),
    "decimal.js": ("import Decimal from 'decimal.js'; new Decimal('0.1').plus('0.2').toString()", "0.3"),
    "diff": ("import { diffWords } from 'diff'; diffWords('a b', 'a c').map((part) => part.value)", ["a ", "b", "c"]),
    "docx": (
        "import { Document, Packer, Paragraph, TextRun } from 'docx'; import JSZip from 'jszip';"
        " const made = await Packer.toArrayBuffer(new Document({sections: [{children: [new Paragraph({children: [new TextRun('hi')]})]}]}));"
        " (await (await JSZip.loadAsync(made)).file('word/document.xml').async('string')).includes('hi')",
        True,
    ),
    "exceljs": (
        "import ExcelJS from 'exceljs'; const book = new ExcelJS.Workbook(); book.addWorksheet('s').addRow([1, 'x']);"
        " const again = new ExcelJS.Workbook(); await again.xlsx.load(await book.xlsx.writeBuffer());"
        " again.getWorksheet('s').getRow(1).getCell(2).value",
        "x",
    ),
    "fast-xml-parser": (
        "import { XMLParser } from 'fast-xml-parser'; new XMLParser().parse('<a><b>1</b></a>')",
        {"a": {"b": 1}},
    ),
    "fuse.js": ("import Fuse from 'fuse.js'; new Fuse(['apple', 'pear'], {}).search('aple')[0].item", "apple"),
    "handlebars": ("import Handlebars from 'handlebars'; Handlebars.compile('Hi {{name}}')({name: 'Ada'})", "Hi Ada"),
    "immer": (
        "import { produce } from 'immer'; const a = {x: [1]}; [produce(a, (d) => { d.x.push(2) }), a]",
        [{"x": [1, 2]}, {"x": [1]}],
    ),
    "js-yaml": ("import * as yaml from 'js-yaml'; yaml.load('a: [1, 2]\\nb: x')", {"a": [1, 2], "b": "x"}),
    "jszip": (
        "import JSZip from 'jszip'; const zip = new JSZip(); zip.file('a/b.txt', 'hello');"
        " const bytes = await zip.generateAsync({type: 'uint8array', compression: 'DEFLATE'});"
        " await (await JSZip.loadAsync(bytes)).file('a/b.txt').async('string')",
        "hello",
    ),
    "lodash": (
        "import _ from 'lodash'; import get from 'lodash/get'; const { chunk } = require('lodash');"
        " [_.groupBy([1, 2, 3], (n) => n % 2), get({a: [{b: 1}]}, 'a[0].b'), chunk([1, 2, 3], 2)]",
        [{"0": [2], "1": [1, 3]}, 1, [[1, 2], [3]]],
    ),
    "lodash-es": (
        "import { sortBy, uniq } from 'lodash-es'; [sortBy([{a: 2}, {a: 1}], 'a'), uniq([1, 1])]",
        [[{"a": 1}, {"a": 2}], [1]],
    ),
    "luxon": (
        "import { DateTime } from 'luxon'; DateTime.fromISO('2024-02-28', {zone: 'utc'}).plus({days: 2}).toISODate()",
        "2024-03-01",
    ),
    "marked": ("import { marked } from 'marked'; marked.parse('**x**')", "<p><strong>x</strong></p>\n"),
    "mathjs": (
        "import { create, all } from 'mathjs'; const m = create(all); [m.evaluate('sqrt(16) + 2^3'), m.det([[1, 2], [3, 4]])]",
        [12, -2],
    ),
    "mustache": ("import Mustache from 'mustache'; Mustache.render('Hi {{name}}', {name: 'Ada'})", "Hi Ada"),
    "nanoid": ("import { nanoid } from 'nanoid'; nanoid().length", 21),
    "papaparse": (
        "import Papa from 'papaparse'; Papa.parse('a,b\\n1,2', {header: true, dynamicTyping: true}).data",
        [{"a": 1, "b": 2}],
    ),
    "pdf-lib": (
        "import { PDFDocument, StandardFonts } from 'pdf-lib'; const pdf = await PDFDocument.create();"
        " pdf.addPage([200, 200]).drawText('hi', {font: await pdf.embedFont(StandardFonts.Helvetica)});"
        " (await PDFDocument.load(await pdf.save())).getPageCount()",
        1,
    ),
    "qs": (
        "import qs from 'qs'; [qs.parse('a[b]=1'), qs.stringify({a: [1, 2]}, {encode: false})]",
        [{"a": {"b": "1"}}, "a[0]=1&a[1]=2"],
    ),
    "ramda": ("import * as R from 'ramda'; R.pipe(R.map(R.add(1)), R.sum)([1, 2])", 5),
    "rxjs": (
        "import { from, lastValueFrom } from 'rxjs'; import { map, toArray } from 'rxjs/operators';"
        " await lastValueFrom(from([1, 2]).pipe(map((x) => x * 2), toArray()))",
        [2, 4],
    ),
    "semver": (
        "import semver from 'semver'; [semver.satisfies('1.2.3', '^1.0.0'), semver.inc('1.2.3', 'minor')]",
        [True, "1.3.0"],
    ),
    "turndown": ("import TurndownService from 'turndown'; new TurndownService().turndown('<h1>x</h1>')", "x\n="),
    "uuid": (
        "import { v4, v5, validate } from 'uuid'; [validate(v4()), v5('x', v5.URL)]",
        [True, "4cd605e7-afa2-5360-b5b9-c5e9fb5c76f4"],
    ),
    "xlsx": (
        "import * as XLSX from 'xlsx'; const book = XLSX.utils.book_new(); XLSX.utils.book_append_sheet(book, XLSX.utils.json_to_sheet([{a: 1}]), 's');"
        " const again = XLSX.read(XLSX.write(book, {type: 'array', bookType: 'xlsx'})); XLSX.utils.sheet_to_json(again.Sheets.s)",
        [{"a": 1}],
    ),
    "yaml": ("import { parse, stringify } from 'yaml'; [parse('a: 1'), stringify({b: [1]})]", [{"a": 1}, "b:\n  - 1\n"]),
    "zod": (
        "import { z } from 'zod'; const Row = z.object({id: z.number(), tags: z.array(z.string()).default([])});"
        " [Row.parse({id: 1}), Row.safeParse({id: 'x'}).success]",
        [{"id": 1, "tags": []}, False],
    ),
}
