"""What all packages of flmarket share: errors, files, plug-ins, names, the console. It imports none of them."""
