"""Records of experiments: samples, the experiment they belong to, and the store that keeps them."""
