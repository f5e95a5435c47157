"""Published studies: analyses their printed values again and compares the printed claims with them."""
