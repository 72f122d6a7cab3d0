"""The paper's agent: Algorithm 1 and its equations."""
