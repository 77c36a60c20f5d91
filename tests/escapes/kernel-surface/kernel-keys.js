// Tries: a key in the keyring of the user, which outlives the process and is shared by all of them.
// Origin: CVE-2016-0728; keyrings are not namespaced.

return native.call("add_key", "user", input.key, "planted", 7, -4);
