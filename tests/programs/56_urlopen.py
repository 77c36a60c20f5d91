import json
from urllib.request import urlopen
json.load(urlopen("https://example.com/weather"))
