# Tries: a key in the keyring of the user, which outlives the process and is shared by all of them.
# Origin: CVE-2016-0728; keyrings are not namespaced.

[native.call("add_key", "user", input["key"], b"planted", 7, ring) for ring in (-4, -5, -3)]
