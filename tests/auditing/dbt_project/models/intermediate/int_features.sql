with applications as (

    select * from {{ ref('stg_applications') }}
    where status = 'complete'

),

bureau as (

    select * from {{ ref('stg_bureau') }}

)

select
    applications.application_id,
    applications.customer_id,
    applications.income,
    applications.age,
    bureau.debt
from applications
left join bureau on bureau.customer_id = applications.customer_id
