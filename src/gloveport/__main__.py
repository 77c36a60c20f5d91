"""`python -m gloveport`: the command line."""

from gloveport.surfaces.cli.main import main

if __name__ == "__main__":
    main()
