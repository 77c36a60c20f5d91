"""The command line, but it waits for every source until it is open: how long that takes depends on the machine."""

from gloveport.host import source_opener
from gloveport.surfaces.cli.main import main

source_opener.SOURCE_WAIT_SECONDS = 300.0

if __name__ == "__main__":
    main()
