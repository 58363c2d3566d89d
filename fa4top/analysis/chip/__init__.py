"""What a chip can do at most: rates, floors, throughputs."""
