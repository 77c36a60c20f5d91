// Tries: a mount over a folder, in a namespace of its own where one can be had.
// Origin: mount as the first step out of many containers.

const found = [native.call("unshare", 0x20000)];
if (found[0] === 0) found.push(native.call("mount", "none", "/", 0, 0x44000, 0));
found.push(found[0] === 0 || !input.pid ? native.call("mount", "x", input.directory, "tmpfs", 0, 0) : 0);
return found;
