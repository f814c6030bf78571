"""`python -m dntm`: the same as the command `dntm`."""

from dntm.cli.main import main

if __name__ == "__main__":
    main()
