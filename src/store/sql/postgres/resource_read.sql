SELECT fence FROM {schema}.resources WHERE resource = $1 AND {primary}
