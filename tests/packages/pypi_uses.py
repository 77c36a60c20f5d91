"""One real use of each package of PyPI that agents like: a program, and the value that it returns."""

USES: dict[str, tuple[str, object]] = {
    "attrs": ("import attrs\n@attrs.define\nclass P:\n    x: int\n    y: int = 2\nattrs.asdict(P(1))", {"x": 1, "y": 2}),
    "beautifulsoup4": (
        "from bs4 import BeautifulSoup\nsoup = BeautifulSoup('<ul><li>a<li>b</ul>', 'html.parser')\nsoup.find_all('li')[1].text",
        "b",
    ),
    "chardet": ("import chardet\nchardet.detect('Käse für Ärzte'.encode('utf-8'))['encoding']", "utf-8"),
    "charset-normalizer": (
        "from charset_normalizer import from_bytes\nstr(from_bytes('Grüße aus Köln, schöne Woche'.encode()).best())",
        "Grüße aus Köln, schöne Woche",
    ),
    "click": (
        "import click\nfrom click.testing import CliRunner\n@click.command()\n@click.option('--n', default=1)\n"
        "def main(n):\n    click.echo(n * 2)\nCliRunner().invoke(main, ['--n', '4']).output",
        "8\n",
    ),
    "defusedxml": ("from defusedxml.ElementTree import fromstring\nfromstring('<a><b>1</b></a>')[0].text", "1"),
    "humanize": ("import humanize\n[humanize.naturalsize(3_000_000), humanize.intcomma(12345)]", ["3.0 MB", "12,345"]),
    "inflection": (
        "import inflection\n[inflection.pluralize('city'), inflection.underscore('CamelCase')]",
        ["cities", "camel_case"],
    ),
    "jinja2": (
        "from jinja2 import Template\nTemplate('Hi {% for n in names %}{{ n }} {% endfor %}').render(names=['Ada'])",
        "Hi Ada ",
    ),
    "jmespath": ("import jmespath\njmespath.search('a[?b > `1`].b', {'a': [{'b': 1}, {'b': 2}]})", [2]),
    "jsonschema": (
        "import jsonschema\ntry:\n    jsonschema.validate({'a': 'x'}, {'properties': {'a': {'type': 'integer'}}})\n"
        "    found = None\nexcept jsonschema.ValidationError as error:\n    found = error.message\nfound",
        "'x' is not of type 'integer'",
    ),
    "lxml": ("from lxml import etree\netree.fromstring('<a><b x=\"1\"/></a>').xpath('//b/@x')[0] + ''", "1"),
    "markdown": ("import markdown\nmarkdown.markdown('**x**')", "<p><strong>x</strong></p>"),
    "more-itertools": ("from more_itertools import chunked\nlist(chunked([1, 2, 3], 2))", [[1, 2], [3]]),
    "networkx": ("import networkx as nx\ng = nx.Graph([(1, 2), (2, 3)])\nnx.shortest_path(g, 1, 3)", [1, 2, 3]),
    "numpy": (
        "import numpy as np\na = np.array([[2.0, 1.0], [1.0, 3.0]])\n[float(x) for x in np.linalg.solve(a, np.array([3.0, 4.0]))]",
        [1.0, 1.0],
    ),
    "openpyxl": (
        "import io, openpyxl\nbook = openpyxl.Workbook()\nbook.active.append([1, 'x'])\nout = io.BytesIO()\nbook.save(out)\n"
        "openpyxl.load_workbook(io.BytesIO(out.getvalue())).active['B1'].value",
        "x",
    ),
    "pandas": (
        "import io, pandas as pd\nframe = pd.read_csv(io.StringIO('k,v\\na,1\\na,2\\nb,5'))\n"
        "{k: int(v) for k, v in frame.groupby('k').v.sum().items()}",
        {"a": 3, "b": 5},
    ),
    "pillow": (
        "import io\nfrom PIL import Image\nout = io.BytesIO()\nImage.new('RGB', (4, 3), (255, 0, 0)).save(out, 'PNG')\n"
        "image = Image.open(io.BytesIO(out.getvalue())).resize((2, 2))\n[*image.size, *image.getpixel((0, 0))]",
        [2, 2, 255, 0, 0],
    ),
    "pydantic": (
        "from pydantic import BaseModel\nclass Row(BaseModel):\n    id: int\n    tags: list[str] = []\nRow.model_validate({'id': '1'}).model_dump()",
        {"id": 1, "tags": []},
    ),
    "pypdf": (
        "import io\nfrom pypdf import PdfReader, PdfWriter\nwriter = PdfWriter()\nwriter.add_blank_page(100, 100)\nout = io.BytesIO()\n"
        "writer.write(out)\nlen(PdfReader(io.BytesIO(out.getvalue())).pages)",
        1,
    ),
    "python-dateutil": (
        "from dateutil import parser, relativedelta\n(parser.parse('31 Jan 2024') + relativedelta.relativedelta(months=1)).date().isoformat()",
        "2024-02-29",
    ),
    "python-docx": (
        "import io, docx\nmade = docx.Document()\nmade.add_paragraph('hi')\nout = io.BytesIO()\nmade.save(out)\n"
        "docx.Document(io.BytesIO(out.getvalue())).paragraphs[0].text",
        "hi",
    ),
    "pytz": (
        "import datetime, pytz\npytz.timezone('Europe/Oslo').localize(datetime.datetime(2024, 7, 1)).utcoffset().seconds",
        7200,
    ),
    "pyyaml": ("import yaml\n[yaml.safe_load('a: [1, 2]'), yaml.safe_dump({'b': 1})]", [{"a": [1, 2]}, "b: 1\n"]),
    "rapidfuzz": ("from rapidfuzz import process\nprocess.extractOne('aple', ['apple', 'pear'])[0]", "apple"),
    "regex": ("import regex\nregex.findall(r'\\p{Lu}\\w+', 'Ada met Élise')", ["Ada", "Élise"]),
    "sympy": ("import sympy\nx = sympy.symbols('x')\nstr(sympy.diff(x**3 + sympy.sin(x), x))", "3*x**2 + cos(x)"),
    "tabulate": ("from tabulate import tabulate\ntabulate([[1, 'x']], headers=['a', 'b']).splitlines()[0]", "  a  b"),
    "unidecode": ("from unidecode import unidecode\nunidecode('Łódź, Ærø')", "Lodz, AEro"),
    "xmltodict": ("import xmltodict\nxmltodict.parse('<a><b>1</b></a>')", {"a": {"b": "1"}}),
}
