# Tries: names in other letters, which the parser folds to ASCII and a filter on the text does not.
# Origin: NFKC identifiers in pyjail collections; S22.

ｏｐｅｎ(input["file"]).ｒｅａｄ() + 𝓸𝓹𝓮𝓷(input["file"]).𝔯𝔢𝔞𝔡()
