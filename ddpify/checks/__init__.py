"""What is emitted is checked: the texts of a conversion, against those that it was made from."""
