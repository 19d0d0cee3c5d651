{{ config(materialized='incremental', unique_key='application_id') }}

select * from {{ ref('credit_decisions') }}
{% if is_incremental() %}
where application_id > (select max(application_id) from {{ this }})
{% endif %}
