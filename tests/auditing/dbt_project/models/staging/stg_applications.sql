with source as (

    select * from {{ source('core', 'applications') }}

),

renamed as (

    select
        id as application_id,
        customer_id,
        annual_income as income,
        applicant_age as age,
        status

    from source

)

select * from renamed
