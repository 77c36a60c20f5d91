"""What the tests of the jail share: hostile programs, hosts that run them in reduced environments, a BPF simulator."""
