-- The roles that may connect to the database, other than its owner and ourselves; 0 is everybody.
SELECT a.grantee = 0,
    CASE WHEN a.grantee = 0 THEN '' ELSE pg_get_userbyid(a.grantee)::text END
FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
WHERE d.datname = current_database() AND a.privilege_type = 'CONNECT'
    AND a.grantee <> d.datdba
    AND a.grantee <> (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)
ORDER BY 2
