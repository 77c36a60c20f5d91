"""`gloveport agents`: tokens of named agents, by which `gloveport serve` knows them."""
