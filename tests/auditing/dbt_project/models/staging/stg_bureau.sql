select
    customer_id,
    debt_ratio as debt
from {{ source('core', 'bureau_reports') }}
