# Prices that a person has to look at.
grep -c '= [0-9]' prices.py
