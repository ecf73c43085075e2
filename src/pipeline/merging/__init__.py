"""From the records of several sources to one paper each: which records are of one paper, and what is made of them."""
