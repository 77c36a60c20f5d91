"""The host of runs: `Gloveport` wires the other folders together; nothing else knows all of them."""
