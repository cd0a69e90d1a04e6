"""The cluster driver: what is observed, how actions are carried out, and the objects that it makes."""
