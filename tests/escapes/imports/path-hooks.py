# Tries: an import hook that fetches modules over the network.
# Origin: httpimport; sys.path_hooks and sys.meta_path.

import importlib.abc, importlib.util, sys, urllib.request


class Fetching(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    def find_spec(self, name, path, target=None):
        if name == "from_afar":
            return importlib.util.spec_from_loader(name, self, origin=f"http://127.0.0.1:{input['tcp']}/x.py")

    def get_filename(self, name):
        return f"http://127.0.0.1:{input['tcp']}/x.py"

    def get_data(self, path):
        return urllib.request.urlopen(path, timeout=2).read()


sys.meta_path.insert(0, Fetching())
sys.dont_write_bytecode = True
__import__("from_afar")
