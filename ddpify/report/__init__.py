"""How a conversion is shown. Everything here is a function of the `Conversion` alone."""
