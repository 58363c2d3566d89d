"""`python -m fa4top`."""

from fa4top.cli.root import main

if __name__ == "__main__":
    main()
