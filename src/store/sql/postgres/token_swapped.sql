-- A row if the swap was carried out, else none.
SELECT now FROM swapped
