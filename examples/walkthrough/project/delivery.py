"""What a customer pays for delivery."""

FREE_FROM = 60  # TODO: compare with the terms
COST = 4.90


def delivery_cost(total: float) -> float:
    return 0.0 if total >= FREE_FROM else COST
