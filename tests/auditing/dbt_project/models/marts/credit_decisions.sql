with features as (

    select * from {{ ref('int_features') }}

),

policy as (

    select * from {{ ref('policy_parameters') }}

)

select
    features.application_id,
    features.income,
    features.debt,
    features.age,
    case
        when features.income >= policy.min_income and features.debt < policy.max_debt then 'approve'
        when features.age >= policy.min_age and features.debt <= policy.refer_debt then 'refer'
        else 'decline'
    end as label
from features
cross join policy
