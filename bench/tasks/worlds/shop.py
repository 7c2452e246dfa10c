"""A shop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from bench.tasks.worlds.world import ToolWords, World, long_text

_GOODS = (
    ("Kettle", 3_900, 12),
    ("Tea pot", 2_450, 0),
    ("Desk lamp", 5_200, 4),
    ("Floor lamp", 11_900, 2),
    ("Notebook", 650, 200),
    ("Pen", 180, 500),
    ("Chair", 14_900, 3),
    ("Lamp shade", 1_900, 9),
)
_SALES = (
    ("ana", (("Kettle", 1), ("Pen", 10)), "paid"),
    ("bo", (("Chair", 2),), "shipped"),
    ("ana", (("Desk lamp", 1),), "shipped"),
    ("cem", (("Notebook", 20), ("Pen", 20)), "paid"),
    ("dee", (("Floor lamp", 1),), "refunded"),
    ("bo", (("Notebook", 3),), "paid"),
)
_LARGE_CHARS = 16_000
_ORDER_CHARS = 9_000


class Item(BaseModel):
    product: str = Field(description="Name of the product.")
    count: int = Field(description="How many.", ge=1)


class Shop(World):
    """A shop."""

    name = "shop"
    words = (
        ToolWords("search_products", ("which products does the shop have, with price and stock", "search products")),
        ToolWords("list_orders", ("orders of a customer in the shop", "list orders")),
        ToolWords("place_order", ("buy something for a customer in the shop", "place order")),
        ToolWords("refund_order", ("give a customer the money back for an order", "refund order")),
    )

    def __init__(self) -> None:
        self._products: dict[str, dict[str, Any]] = {}
        self._orders: dict[int, dict[str, Any]] = {}
        self._is_large = False
        self.reset(False)

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        return (self.search_products, self.list_orders, self.place_order, self.refund_order)

    @property
    def state(self) -> Mapping[str, Any]:
        return {"products": self._products, "orders": self._orders}

    def reset(self, is_large: bool) -> None:
        self._is_large = is_large
        self._products.clear()
        self._orders.clear()
        for index, (name, price_cents, stock) in enumerate(_GOODS):
            text = long_text(index, _LARGE_CHARS if is_large else 60)
            self._products[name] = {
                "name": name,
                "price_cents": price_cents,
                "stock": stock + 1000,
                "description": text,
            }
        for customer, items, status in _SALES:
            self._sold(customer, items, status)
        for name, _, stock in _GOODS:
            self._products[name]["stock"] = stock

    def search_products(
        self,
        text: Annotated[str, Field(description="Words in the name; empty for all.")] = "",
        max_price_cents: Annotated[int | None, Field(description="Only products that cost at most this.")] = None,
        in_stock: Annotated[bool, Field(description="Only products that are there.")] = False,
    ) -> dict[str, Any]:
        """Find products of the shop by words in their name, with price in cents, stock and description."""
        found = [
            product
            for product in self._products.values()
            if text.lower() in product["name"].lower()
            and (max_price_cents is None or product["price_cents"] <= max_price_cents)
            and (not in_stock or product["stock"])
        ]
        return {"products": found}

    def list_orders(
        self,
        customer: Annotated[str, Field(description="Only orders of this customer; empty for all.")] = "",
        status: Annotated[
            Literal["any", "paid", "shipped", "refunded"], Field(description="Only orders with this status.")
        ] = "any",
    ) -> dict[str, Any]:
        """List orders of the shop, oldest first, with their items, total in cents and status."""
        found = [
            order
            for order in self._orders.values()
            if (not customer or order["customer"] == customer) and status in ("any", order["status"])
        ]
        return {"orders": found}

    def place_order(
        self,
        customer: Annotated[str, Field(description="Who buys.", min_length=1)],
        items: Annotated[list[Item], Field(description="What, and how many.", min_length=1)],
    ) -> dict[str, Any]:
        """Place an order in the shop for a customer. The stock is lowered; too little stock is refused."""
        for item in items:
            product = self._products.get(item.product)
            if product is None:
                raise ToolError(f"there is no product {item.product!r}")
            if product["stock"] < item.count:
                raise ToolError(f"only {product['stock']} of {item.product} are there")
        return self._sold(customer, tuple((item.product, item.count) for item in items), "paid")

    def refund_order(
        self,
        id: Annotated[int, Field(description="Number of the order.")],
        reason: Annotated[str, Field(description="What the customer is told.", min_length=1)],
    ) -> dict[str, Any]:
        """Refund an order of the shop in full and tell the customer why."""
        if id not in self._orders:
            raise ToolError(f"there is no order {id}")
        if self._orders[id]["status"] == "refunded":
            raise ToolError(f"order {id} was refunded before")
        self._orders[id].update(status="refunded", reason=reason)
        return {"id": id, "status": "refunded", "cents": self._orders[id]["total_cents"]}

    def _sold(self, customer: str, items: tuple[tuple[str, int], ...], status: str) -> dict[str, Any]:
        number = 9_001 + len(self._orders)
        total = sum(self._products[name]["price_cents"] * count for name, count in items)
        for name, count in items:
            self._products[name]["stock"] -= count
        listed = [{"product": name, "count": count} for name, count in items]
        self._orders[number] = {"id": number, "customer": customer, "items": listed, "total_cents": total}
        self._orders[number]["notes"] = long_text(number, _ORDER_CHARS if self._is_large else 40)
        self._orders[number].update(status=status, reason="")
        return self._orders[number]
