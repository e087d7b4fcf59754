// The room CofferServerSQLite.
