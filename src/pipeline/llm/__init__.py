"""Language models behind OpenAI-compatible endpoints: requests, recorded answers, prices, and what a reply says."""
