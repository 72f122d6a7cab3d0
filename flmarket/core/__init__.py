"""The basis of all packages of flmarket: errors, files, plug-ins, names, the console. It imports none of them."""
