// Tries: the new mount calls, fsopen and open_tree, which older filters don't know.
// Origin: CVE-2022-0185 (fsconfig).

return [native.call("fsopen", "tmpfs", 0), native.call("open_tree", -100, "/", 1)];
