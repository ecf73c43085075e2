"""The parts of the benchmark: each module's ``rows`` measures one thing and returns lines of the table."""
